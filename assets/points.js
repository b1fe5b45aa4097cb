// The points and lines of a map in WebGL2. Uploaded arrays stay on the GPU until they change.
const RAMP = ["#00204d", "#31446b", "#666970", "#958f78", "#cbba69", "#ffea46"]; // cividis
const RAMP_DARK = ["#2f5f9e", "#5a7393", "#87898a", "#a8a07d", "#d0be69", "#ffea46"];
const SHAPES = ["●", "■", "▲", "◆", "✚", "✖", "○", "□", "△", "◇", "✛", "⨯"]; // classes also differ in shape

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);

// Beyond the palette the hues begin again at a second level of lightness: darker, on a dark page paler.
const COLORS = 2 * CLASS_COLORS.light.length;
const TONES = [CLASS_COLORS.light, CLASS_COLORS.dark].map((palette, isDark) => Array.from({ length: COLORS }, (_, code) => {
  const [share, end] = code < palette.length ? [0, 0] : isDark ? [0.45, 255] : [0.4, 0];
  const parts = rgb(palette[code % palette.length]).map((part) => Math.round(255 * part * (1 - share) + end * share));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}));
const toneOf = (code, isDark) => TONES[isDark ? 1 : 0][code % COLORS];

const VERTEX = `#version 300 es
in vec2 from; in vec2 to; in float code; in float flag;
uniform float travel, size, pass, numeric, colors; uniform vec2 center, scale;
uniform vec3 palette[${COLORS}]; uniform vec3 ramp[6]; uniform vec3 gray;
out vec3 tint; out float shape; out float alpha; out float radius;
void main() {
  vec2 at = (mix(from, to, travel) - center) * scale;
  bool dim = flag < 0.5;
  gl_Position = (pass > 0.5) == dim ? vec4(2.0, 2.0, 0.0, 1.0) : vec4(at, 0.0, 1.0);
  float grow = 1.0;
  if (code < 0.0) { tint = gray; shape = 6.0; alpha = 0.5; grow = 0.8; }
  else if (numeric > 0.5) {
    float place = clamp(code, 0.0, 1.0) * 5.0; int low = int(min(floor(place), 4.0));
    tint = mix(ramp[low], ramp[low + 1], place - float(low)); shape = 0.0; alpha = 0.9; grow = 0.75 + 0.6 * clamp(code, 0.0, 1.0);
  } else { int style = int(code + 0.5); tint = palette[style % ${COLORS}]; shape = float(style / ${COLORS}); alpha = 0.85; }
  if (dim) { tint = gray; alpha = 0.22; grow *= 0.8; }
  radius = max(1.0, size * grow);
  gl_PointSize = radius;
}`;
const FRAGMENT = `#version 300 es
precision highp float;
in vec3 tint; in float shape; in float alpha; in float radius; out vec4 color;
void main() {
  vec2 p = (gl_PointCoord - 0.5) * 2.0; p.y = -p.y; float d;
  float form = mod(shape, 6.0);
  if (form > 4.5) p = vec2(p.x + p.y, p.y - p.x) * 0.7071;
  vec2 q = abs(p);
  if (form < 0.5) d = length(p) - 0.9;
  else if (form < 1.5) d = max(q.x, q.y) - 0.78;
  else if (form < 2.5) d = max(q.x * 0.866 + p.y * 0.5, -p.y) - 0.55;
  else if (form < 3.5) d = (q.x + q.y) * 0.7071 - 0.7071;
  else d = max(min(q.x, q.y) - 0.3, max(q.x, q.y) - 0.95);
  if (shape > 5.5) d = abs(d + 0.17) - 0.17;
  float edge = clamp(0.5 - d * radius * 0.5, 0.0, 1.0) * alpha;
  if (edge < 0.02) discard;
  color = vec4(tint * edge, edge);
}`;
const LINE_VERTEX = `#version 300 es
in vec2 from; in vec2 to; uniform float travel; uniform vec2 center, scale;
void main() { gl_Position = vec4((mix(from, to, travel) - center) * scale, 0.0, 1.0); }`;
const LINE_FRAGMENT = `#version 300 es
precision mediump float; uniform vec4 tint; out vec4 color; void main() { color = tint; }`;

class Points {
  // restored: called when the GPU context returns empty, after the browser dropped it
  constructor(canvas, restored) {
    this.canvas = canvas;
    this.buffers = {};
    this.lines = 0;
    this.gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true });
    if (!this.gl) return;
    this.start();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => { this.start(); restored(); });
  }

  get ready() { return Boolean(this.gl) && !this.gl.isContextLost(); }

  start() {
    const { gl } = this;
    this.buffers = {};
    this.pointProgram = this.program(VERTEX, FRAGMENT);
    this.lineProgram = this.program(LINE_VERTEX, LINE_FRAGMENT);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  program(vertex, fragment) {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const uniforms = {};
    const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS);
    for (let index = 0; index < count; index += 1) {
      const { name } = gl.getActiveUniform(program, index);
      uniforms[name.replace("[0]", "")] = gl.getUniformLocation(program, name);
    }
    return { program, uniforms };
  }

  upload(name, array) {
    const { gl } = this;
    if (!this.ready) return;
    this.buffers[name] ??= gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[name]);
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.DYNAMIC_DRAW);
  }

  attribute(program, name, buffer, size, type) {
    const { gl } = this;
    const location = gl.getAttribLocation(program, name);
    if (location < 0) return;
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[buffer]);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, size, type, false, 0, 0);
  }

  // rows: pairs of points to join by a line; from, to: positions of all points before and after a move
  join(rows, from, to) {
    this.lines = rows?.length ?? 0;
    if (!this.lines) return;
    const ends = (source) => {
      const out = new Float32Array(rows.length * 2);
      rows.forEach((row, at) => { out[2 * at] = source[2 * row]; out[2 * at + 1] = source[2 * row + 1]; });
      return out;
    };
    this.upload("lineFrom", ends(from));
    this.upload("lineTo", ends(to));
  }

  // view: {count, center, scale, travel, size, numeric, dark, ink, gray, dimmed}; sizes in pixels of the canvas
  draw(view) {
    const { gl } = this;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const shared = ({ uniforms }) => {
      gl.uniform1f(uniforms.travel, view.travel);
      gl.uniform2f(uniforms.center, ...view.center);
      gl.uniform2f(uniforms.scale, ...view.scale);
    };
    if (this.lines) {
      gl.useProgram(this.lineProgram.program);
      shared(this.lineProgram);
      const alpha = Math.max(0.08, Math.min(0.35, 400 / this.lines));
      gl.uniform4f(this.lineProgram.uniforms.tint, ...view.ink.map((part) => part * alpha), alpha);
      this.attribute(this.lineProgram.program, "from", "lineFrom", 2, gl.FLOAT);
      this.attribute(this.lineProgram.program, "to", "lineTo", 2, gl.FLOAT);
      gl.drawArrays(gl.LINES, 0, this.lines);
    }
    const { program, uniforms } = this.pointProgram;
    gl.useProgram(program);
    shared(this.pointProgram);
    gl.uniform1f(uniforms.size, view.size);
    gl.uniform1f(uniforms.numeric, view.numeric ? 1 : 0);
    gl.uniform3fv(uniforms.palette, TONES[view.dark ? 1 : 0].flatMap(rgb));
    gl.uniform3fv(uniforms.ramp, (view.dark ? RAMP_DARK : RAMP).flatMap(rgb));
    gl.uniform3fv(uniforms.gray, view.gray);
    this.attribute(program, "from", "from", 2, gl.FLOAT);
    this.attribute(program, "to", "to", 2, gl.FLOAT);
    this.attribute(program, "code", "code", 1, gl.FLOAT);
    this.attribute(program, "flag", "flag", 1, gl.UNSIGNED_BYTE);
    for (const pass of view.dimmed ? [0, 1] : [1]) { // grayed points lie below the others
      gl.uniform1f(uniforms.pass, pass);
      gl.drawArrays(gl.POINTS, 0, view.count);
    }
  }

  end() { this.gl?.getExtension("WEBGL_lose_context")?.loseContext(); }
}

