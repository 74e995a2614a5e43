"""What several tests need: servers, databases, terminals, warm processes, and readers of the documents."""
