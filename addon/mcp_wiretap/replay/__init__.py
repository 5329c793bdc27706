"""Recordings played again: the server's part for live clients (`player`, `server`), the client's for a live server (`client`)."""
