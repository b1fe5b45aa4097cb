"""The data of the lessons, one file a lesson."""
