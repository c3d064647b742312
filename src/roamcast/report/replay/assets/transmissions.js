// Frames as they happen: a wave around the sender and a line to each receiver, in the colour of the role; a cross in the
// colour of the reason where one was lost. What has ended fades away, over a time that the watcher can see.

const LINGER = 0.35; // seconds of the watcher
const MOST_FRAMES = 150, MOST_RECEPTIONS = 500, MOST_WAVES = 25; // the newest are drawn: more cannot be told apart
const AGES = 4; // shades of fading

class Transmissions {
  constructor(run) {
    this._run = run;
  }

  // How long a frame is seen after its end, in seconds of the run. While the clock stands, only what is on the air is.
  static linger(clock) {
    return clock.playing ? LINGER * Math.min(clock.speed, 20) : 0;
  }

  draw(context, camera, palette, clock, story) {
    const { frame } = this._run, { time } = clock, linger = Transmissions.linger(clock);
    const newest = upperBound(frame.start, time) - 1;
    const oldest = Math.max(lowerBound(frame.start, time - this._run.longest - linger), newest - MOST_FRAMES + 1);
    const losses = new Map();
    context.lineWidth = 1.5;
    let left = MOST_RECEPTIONS;
    for (let i = newest; i >= oldest && left > 0; i--) {
      const age = Math.max(0, time - frame.end[i]);
      if (age > linger) continue;
      const role = this._run.role(i), faint = story && frame.event[i] !== story.event ? AGES : 0;
      const shade = Math.min(AGES - 1, Math.floor((AGES * age) / (linger || 1))) + faint;
      context.globalAlpha = opacity(shade);
      context.strokeStyle = palette.roles[role];
      this._lines(context, i, camera, losses, shade);
      left -= this._run.reception.first[i + 1] - this._run.reception.first[i];
      if (newest - i < MOST_WAVES) this._wave(context, i, camera, palette.roles[role], time, linger, shade);
    }
    context.lineWidth = 2;
    for (const [key, path] of losses) {
      const [outcome, shade] = key.split(" ");
      stroke(context, path, palette.outcomes[outcome], opacity(Number(shade)));
    }
    context.globalAlpha = 1;
  }

  // One line at a time: without a graphics card, a path of many lines that cross takes ten times as long.
  _lines(context, i, camera, losses, shade) {
    const { frame, reception, movement } = this._run, sender = frame.sender[i];
    const x = camera.screenX(movement.x[sender]), y = camera.screenY(movement.y[sender]);
    for (let r = reception.first[i]; r < reception.first[i + 1]; r++) {
      const node = reception.node[r], outcome = reception.outcome[r];
      const tx = camera.screenX(movement.x[node]), ty = camera.screenY(movement.y[node]);
      if (outcome === 0) {
        line(context, x, y, tx, ty);
        continue;
      }
      cross(part(losses, `${outcome} ${shade}`), x, y, tx, ty);
    }
  }

  _wave(context, i, camera, colour, time, linger, shade) {
    const { frame, movement } = this._run, sender = frame.sender[i];
    const spread = clamp((time - frame.start[i]) / (frame.end[i] - frame.start[i] + linger / 2 || 1), 0.05, 1);
    const radius = spread * (movement.range[sender] * camera.scale || 40);
    const x = camera.screenX(movement.x[sender]), y = camera.screenY(movement.y[sender]);
    if (x + radius < 0 || y + radius < 0 || x - radius > camera.width || y - radius > camera.height) return;
    const path = new Path2D();
    path.arc(x, y, radius, 0, 2 * Math.PI);
    stroke(context, path, colour, 0.5 * opacity(shade));
  }
}

function line(context, x, y, tx, ty) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(tx, ty);
  context.stroke();
}

function part(paths, key) {
  if (!paths.has(key)) paths.set(key, new Path2D());
  return paths.get(key);
}

// A cross before the node at (tx, ty), on the side that the frame came from, so that several can be seen.
function cross(path, x, y, tx, ty) {
  const length = Math.hypot(tx - x, ty - y) || 1;
  const cx = tx - (14 * (tx - x)) / length, cy = ty - (14 * (ty - y)) / length;
  path.moveTo(cx - 4, cy - 4);
  path.lineTo(cx + 4, cy + 4);
  path.moveTo(cx - 4, cy + 4);
  path.lineTo(cx + 4, cy - 4);
}

function opacity(shade) {
  return (shade >= AGES ? 0.15 : 1) * (1 - (shade % AGES) / AGES);
}

function stroke(context, path, colour, alpha) {
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  context.stroke(path);
}
