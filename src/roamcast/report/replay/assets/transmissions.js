// Frames as they happen: a wave around the sender and a line to each receiver, in the colour of the role; a cross in the
// colour of the reason where one was lost. What has ended fades away, over a time that the watcher can see.

const LINGER = 0.35; // seconds of the watcher
const MOST_FRAMES = 150, MOST_RECEPTIONS = 500, MOST_WAVES = 25; // the newest are drawn: more cannot be told apart
const AGES = 4; // shades of fading

class Transmissions {
  constructor(run, sprites) {
    this._run = run;
    this._sprites = sprites;
  }

  // How long a frame is seen after its end, in seconds of the run. While the clock stands, only what is on the air is.
  static linger(clock) {
    return clock.playing ? LINGER * Math.min(clock.speed, 20) : 0;
  }

  draw(context, camera, palette, clock, story) {
    const { frame, reception } = this._run, { time } = clock, linger = Transmissions.linger(clock);
    const newest = upperBound(frame.start, time) - 1;
    const oldest = Math.max(lowerBound(frame.start, time - this._run.longest - linger), newest - MOST_FRAMES + 1);
    const lines = new Lines(context, 1), waves = [];
    let left = MOST_RECEPTIONS;
    for (let i = newest; i >= oldest && left > 0; i--) {
      const age = Math.max(0, time - frame.end[i]);
      if (age > linger) continue;
      const colour = palette.roles[this._run.role(i)], faint = story && frame.event[i] !== story.event ? AGES : 0;
      const alpha = opacity(Math.min(AGES - 1, Math.floor((AGES * age) / (linger || 1))) + faint);
      lines.look(colour, alpha);
      this._lines(lines, context, i, camera);
      left -= reception.first[i + 1] - reception.first[i];
      if (newest - i < MOST_WAVES) waves.push([i, colour, alpha]);
    }
    lines.end();
    for (const [i, colour, alpha] of waves) this._wave(context, i, camera, colour, alpha, time, linger);
    context.globalAlpha = 1;
  }

  _lines(lines, context, i, camera) {
    const { frame, reception, movement } = this._run, sender = frame.sender[i];
    const x = camera.screenX(movement.x[sender]), y = camera.screenY(movement.y[sender]);
    for (let r = reception.first[i]; r < reception.first[i + 1]; r++) {
      const node = reception.node[r], outcome = reception.outcome[r];
      const tx = camera.screenX(movement.x[node]), ty = camera.screenY(movement.y[node]);
      if (outcome === 0) lines.add(x, y, tx, ty);
      else this._sprites.cross(context, outcome, x, y, tx, ty);
    }
  }

  _wave(context, i, camera, colour, alpha, time, linger) {
    const { frame, movement } = this._run, sender = frame.sender[i];
    const spread = clamp((time - frame.start[i]) / (frame.end[i] - frame.start[i] + linger / 2 || 1), 0.05, 1);
    const radius = spread * (movement.range[sender] * camera.scale || 40);
    const x = camera.screenX(movement.x[sender]), y = camera.screenY(movement.y[sender]);
    if (x + radius < 0 || y + radius < 0 || x - radius > camera.width || y - radius > camera.height) return;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.strokeStyle = colour;
    context.globalAlpha = 0.5 * alpha;
    context.stroke();
  }
}

function opacity(shade) {
  return (shade >= AGES ? 0.15 : 1) * (1 - (shade % AGES) / AGES);
}

function stroke(context, path, colour, alpha) {
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  context.stroke(path);
}
