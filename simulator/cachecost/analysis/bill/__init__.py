"""What billed calls cost, what of it was paid to write again what had been cached, and why."""
