"""Gemini's generateContent, served."""
