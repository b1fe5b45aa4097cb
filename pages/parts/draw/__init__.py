"""What pages draw with: galleries, pictures, charts, tables, sliders, forms and downloads."""
