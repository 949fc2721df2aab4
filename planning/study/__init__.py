"""What is asked, and what answers it: pure, over estimators and economics, without framework or database."""
