"""Two recordings beside each other: what a server offers, what calls came to, what rules were broken, how long it took."""
