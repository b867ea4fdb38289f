"""What tests share: private servers, services, clients, stories, and other help. No test lives here."""
