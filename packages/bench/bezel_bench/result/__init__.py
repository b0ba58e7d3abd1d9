"""Result document: samples, columns, figures, cell status, files and exports."""
