"""Cloud DNS: managed zones and their record sets."""
