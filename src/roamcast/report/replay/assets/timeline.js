// The time axis: packets a second, of which the part in which receptions were lost is red, publications, and a hand where
// the clock is. Drag to go there. While the run plays only the hand moves, which costs no drawing.

class Timeline {
  constructor(canvas, run, clock, palette, view, most, seek) {
    this._canvas = canvas;
    this._hand = canvas.parentElement.querySelector(".hand");
    this._run = run;
    this._clock = clock;
    this._palette = palette;
    this._view = view;
    this._most = most; // packets a second at the top
    const go = (event) => {
      const box = canvas.getBoundingClientRect();
      seek(((event.clientX - box.left) / box.width) * clock.end);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    canvas.addEventListener("pointermove", (event) => event.buttons && go(event));
  }

  resize() {
    // Asked once: in the middle of a picture the answer would cost a layout of the page.
    ({ clientWidth: this._width, clientHeight: this._height } = this._canvas);
    this._canvas.width = Math.round(this._width * devicePixelRatio);
    this._canvas.height = Math.round(this._height * devicePixelRatio);
    this._drawn = null;
  }

  draw() {
    if (!this._width || !this._height) return;
    const wanted = `${this._palette.packets} ${this._view.story ? this._view.story.event : -1}`;
    if (this._drawn !== wanted) this._drawAxis(this._width, this._height);
    this._drawn = wanted;
    this._hand.style.transform = `translateX(${((this._clock.time / this._clock.end) * this._width).toFixed(1)}px)`;
  }

  _drawAxis(width, height) {
    const context = this._canvas.getContext("2d");
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, height);
    const { packets, lost, received } = this._run.series, foot = height - 16, tall = foot - 10, end = this._clock.end;
    // A bar a pixel column: the highest of the seconds that fall into it.
    const bars = Math.min(packets.length, Math.ceil(width)), step = packets.length / bars;
    for (let bar = 0; bar < bars; bar++) {
      const low = Math.floor(bar * step), high = Math.max(low + 1, Math.floor((bar + 1) * step));
      let sent = 0, gone = 0, all = 0;
      for (let s = low; s < high; s++) {
        sent = Math.max(sent, packets[s]);
        gone += lost[s];
        all += lost[s] + received[s];
      }
      const x = (bar / bars) * width, w = Math.max(1, width / bars - 0.5);
      context.fillStyle = this._palette.packets;
      context.fillRect(x, foot - (tall * sent) / this._most, w, (tall * sent) / this._most);
      context.fillStyle = this._palette.outcomes[1];
      const part = all ? (((tall * sent) / this._most) * gone) / all : 0;
      context.fillRect(x, foot - part, w, part);
    }
    this._ticks(context, width, height, foot, end);
  }

  _ticks(context, width, height, foot, end) {
    context.fillStyle = this._palette.publisher;
    for (const time of this._run.event.time) context.fillRect((time / end) * width, foot, 1, 3);
    const story = this._view.story;
    if (story) {
      const x = (story.published / end) * width;
      context.fillStyle = this._palette.accent;
      context.fillRect(x - 1.5, 0, 3, height);
    }
    context.fillStyle = this._palette.muted;
    context.font = "10px system-ui, sans-serif";
    context.textBaseline = "bottom";
    const rough = (end * 90) / width, power = 10 ** Math.floor(Math.log10(rough));
    const every = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    const digits = Math.max(0, -Math.floor(Math.log10(every)));
    for (let time = 0; time <= end; time += every) {
      const x = (time / end) * width;
      context.textAlign = time === 0 ? "left" : x > width - 20 ? "right" : "center";
      context.fillText(`${time.toFixed(digits)} s`, clamp(x, 0, width), height);
    }
  }
}
