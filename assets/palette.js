// The colors of classes and clusters, of charts' lines and of lessons. pages/parts/draw/palette.py reads this list, and
// tests/app/test_palette.py holds its bounds: colors differ from each other, and from the colors of hit, miss and query.
const CLASS_COLORS = {
  "light": ["#64bd50", "#8f539d", "#db5471", "#06bfa8", "#7b7fd6", "#d285cb", "#8e8f19", "#258343", "#4baeed", "#e98664",
    "#754b10", "#107c8b", "#2d3acc", "#9d8468", "#a0aa87", "#804036", "#2fd4ec", "#4c5b3d", "#c5c619", "#f1a6b0"],
  "dark": ["#55d034", "#d15fea", "#ec6480", "#51e6ce", "#6f6fe2", "#faabf3", "#868604", "#3b9555", "#3ca2e0", "#f69370",
    "#e0c6a8", "#007785", "#becaec", "#a37640", "#d6f567", "#d24e3e", "#0ec7de", "#daecc9", "#9a9b78", "#ffb2bd"]
};
