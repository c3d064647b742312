// Small things about numbers: places in sorted columns, and times as people read them.

// How many of the values between low and high are at most `value`, counted from 0.
function upperBound(values, value, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function lowerBound(values, value, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Rows by key: those of key k are rows[first[k]] to rows[first[k + 1]], in their old order. Keys below 0 are left out.
function grouped(keys, count) {
  const first = new Int32Array(count + 1);
  for (const key of keys) if (key >= 0) first[key + 1]++;
  for (let k = 0; k < count; k++) first[k + 1] += first[k];
  const next = first.slice(), rows = new Int32Array(first[count]);
  for (let row = 0; row < keys.length; row++) if (keys[row] >= 0) rows[next[keys[row]]++] = row;
  return { first, rows };
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

// A time of the run, with as many digits as the speed lets one see.
function clockText(seconds, digits) {
  const rounded = Number(seconds.toFixed(digits)); // first: 59.9 s without digits is 1:00, not 0:60
  const minutes = Math.floor(rounded / 60), rest = rounded - 60 * minutes;
  const text = rest.toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
  return `${minutes}:${text}`;
}

function spanText(seconds) {
  if (seconds < 0.001) return `${(1e6 * seconds).toFixed(0)} µs`;
  if (seconds < 1) return `${(1e3 * seconds).toFixed(1)} ms`;
  if (seconds < 120) return `${seconds.toFixed(2)} s`;
  return `${(seconds / 60).toFixed(1)} min`;
}

function words(name) {
  return name.replaceAll("_", " ");
}
