"""How the platform is asked."""
