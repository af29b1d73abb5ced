"""Reports as one HTML file: no network, no script needed, light and dark, on paper and on a phone."""
