"""Browser components: map, gallery, slider and paste box."""
