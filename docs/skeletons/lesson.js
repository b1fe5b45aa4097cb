// Who is nearest? An example of a lesson.
const LESSON = {
  id: "nearest",
  number: 15,
  minutes: 5,
  title: "Who is nearest?",
  claim: "The nearest point depends on where you stand.",
  data: [],
  before: {
    text: "You move the query to the right. Which point becomes its nearest neighbor?",
    choices: ["The left point", "The right point"],
    right: 1,
    because: "Its distance shrinks while the other one grows.",
  },
  touch: "Drag the query.",
  see: "The line joins the query to its nearest point.",
  controls: [],
  hidden: [{ name: "query", start: [-0.5, 0], low: [-2, -1], high: [2, 1] }],
  compute({ query }) {
    const distances = [[-1, 0], [1, 0]].map(([x, y]) => Math.hypot(query[0] - x, query[1] - y));
    return { distances, nearest: distances[0] <= distances[1] ? 0 : 1 };
  },
  readout: ({ distances, nearest }) => [[say("nearest"), nearest ? say("right") : say("left")], [say("distance"), fixed(distances[nearest], 2)]],
  build({ stage, change }) {
    const plane = new Plane(stage, { x: [-2, 2], y: [-1, 1], label: "Two points and a query" });
    const handle = plane.handle({ label: "Query", sign: "★", low: [-2, -1], high: [2, 1], moved: (query) => change({ query }) });
    return { draw({ query }, { nearest }) {
      plane.clear();
      plane.line(query, [[-1, 0], [1, 0]][nearest], { color: COLORS.query });
      plane.dot([-1, 0]);
      plane.dot([1, 0]);
      handle.place(query);
    } };
  },
  formula: (_state, { distances }) => `<p>min(${numberList(distances.map((distance) => fixed(distance, 2)))})</p>`,
  fails: "Two points at the same distance have no nearest neighbor.",
  takeaway: "A neighbor is defined by a distance.",
  open: { page: "retrieval", label: "the nearest images of a query" },
  after: {
    text: "Both points are equally far from the query. Which one is nearest?",
    choices: ["Neither: the distance does not decide", "The left point"],
    right: 0,
    because: "Another rule must break the tie.",
  },
  notes: {
    ask: "Where is the border between the two neighborhoods?",
    wrong: "The border is a circle around each point.",
    stuck: "Students move the query, and forget that the points stay.",
  },
};
