"""Routes of compactions, their jobs and policies, views, and dropped units."""
