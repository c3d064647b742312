// Delivery of one event over time, beside what was possible by contacts alone.

const SEEN = 4; // of what was possible later than the last delivery, so many times that long: else the curve is a spike

class DeliveryChart {
  constructor(canvas, palette) {
    this._canvas = canvas;
    this._palette = palette;
  }

  draw(story, now) {
    const canvas = this._canvas, { clientWidth: width, clientHeight: height } = canvas, palette = this._palette;
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    const context = canvas.getContext("2d");
    context.scale(devicePixelRatio, devicePixelRatio);
    const after = (time) => time - story.published;
    const possible = story.pairs.map((pair) => after(pair.possible)).filter(Number.isFinite);
    const reached = story.pairs.map(({ node }) => story.delivered.get(node)).filter(Boolean).map(({ time }) => after(time));
    const longest = 1.15 * Math.max(1e-3, ...reached, ...possible.map((time) => Math.min(time, SEEN * Math.max(0.02, ...reached))));
    const [left, right, top, foot] = [38, width - 8, 8, height - 16];
    const x = (time) => left + ((right - left) * Math.min(time, longest)) / longest;
    const y = (share) => foot - (foot - top) * share;
    context.font = "10px system-ui, sans-serif";
    context.fillStyle = palette.muted;
    context.strokeStyle = palette.line;
    for (const share of [0, 0.5, 1]) {
      context.beginPath();
      context.moveTo(left, y(share));
      context.lineTo(right, y(share));
      context.stroke();
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(`${100 * share} %`, left - 4, y(share));
    }
    context.textBaseline = "bottom";
    context.textAlign = "left";
    context.fillText("0", left, height);
    context.textAlign = "right";
    context.fillText(`${spanText(longest)} after publication`, right, height);
    this._steps(context, possible, story.pairs.length, x, y, right, palette.muted, [4, 3]);
    this._steps(context, reached, story.pairs.length, x, y, right, palette.accent, []);
    if (now >= story.published && after(now) <= longest) {
      context.fillStyle = palette.text;
      context.fillRect(x(after(now)) - 0.5, top, 1, foot - top);
    }
  }

  _steps(context, times, total, x, y, right, colour, dashes) {
    context.beginPath();
    context.moveTo(x(0), y(0));
    times.sort((a, b) => a - b).forEach((time, i) => {
      context.lineTo(x(time), y(i / total));
      context.lineTo(x(time), y((i + 1) / total));
    });
    context.lineTo(right, y(times.length / total || 0));
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.setLineDash(dashes);
    context.stroke();
    context.setLineDash([]);
    context.lineWidth = 1;
  }
}
