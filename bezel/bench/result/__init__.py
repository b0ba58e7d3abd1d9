"""The result document: samples, columns, figures, cell status, files and exports."""
