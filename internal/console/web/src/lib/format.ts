// Figures as people read them, each with its unit.

const none = "–";

// rate shows bytes a second as bits a second, as networks are sold.
export function rate(bytes: number | undefined): string {
  if (bytes === undefined || !(bytes >= 0)) return none;
  const bits = bytes * 8;
  if (bits >= 1e12) return digits(bits / 1e12) + " Tbit/s";
  if (bits >= 1e9) return digits(bits / 1e9) + " Gbit/s";
  if (bits >= 1e6) return digits(bits / 1e6) + " Mbit/s";
  if (bits >= 1e3) return digits(bits / 1e3) + " kbit/s";
  return Math.round(bits) + " bit/s";
}

// digits gives three figures at most, and no more than one behind the point.
function digits(v: number): string {
  return v >= 99.95 ? String(Math.round(v)) : v.toFixed(1).replace(/\.0$/, "");
}

export function ms(v: number | undefined): string {
  if (v === undefined || !Number.isFinite(v)) return none;
  const a = Math.abs(v);
  if (a >= 10_000) return digits(v / 1000) + " s";
  if (a >= 1000) return (v / 1000).toFixed(2) + " s";
  if (a >= 10 || a === 0) return Math.round(v) + " ms";
  return v.toFixed(1) + " ms";
}

export function share(v: number | undefined): string {
  if (v === undefined || !Number.isFinite(v)) return none;
  const p = v * 100;
  if (p === 0) return "0 %";
  if (p < 0.1) return "< 0.1 %";
  return (p < 10 ? p.toFixed(1).replace(/\.0$/, "") : String(Math.round(p))) + " %";
}

export function count(v: number | undefined): string {
  if (v === undefined || !Number.isFinite(v)) return none;
  if (Math.abs(v) >= 1e6) return digits(v / 1e6) + " M";
  return Math.round(v).toLocaleString("en").replaceAll(",", " "); // thin spaces
}

// many gives a count and its noun.
export function many(n: number, one: string, more = one + "s"): string {
  return `${count(n)} ${n === 1 ? one : more}`;
}

export function perHour(v: number): string {
  return (v === 0 ? "0" : v < 10 ? v.toFixed(1) : String(Math.round(v))) + " /h";
}

// Times of the router are compared with its own clock, not with the browser's: see skew.
let skew = 0;

// heardAt takes the router's time as it arrives. The smallest difference is the one that waited least.
export function heardAt(at: string | undefined): void {
  const t = at ? Date.parse(at) : NaN;
  if (!Number.isNaN(t)) skew = t - Date.now();
}

export function now(): number {
  return Date.now() + skew;
}

// isTime tells whether a time was given: Go's zero time is the year 1.
export function isTime(at: string | undefined): at is string {
  return !!at && !at.startsWith("0001-");
}

export function ago(at: string | undefined): string {
  if (!isTime(at)) return "never";
  const s = (now() - Date.parse(at)) / 1000;
  if (s < 1.5) return "now";
  return span(s) + " ago";
}

// span gives a time in its largest unit, or two of them where it counts.
export function span(s: number): string {
  if (s < 60) return Math.round(s) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86400) return Math.floor(s / 3600) + " h" + (s < 36000 ? " " + (Math.floor(s / 60) % 60) + " min" : "");
  return Math.floor(s / 86400) + " d";
}

const two = (n: number) => String(n).padStart(2, "0");

export function clock(at: string | undefined, millis = false): string {
  if (!isTime(at)) return none;
  const d = new Date(at);
  const t = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return millis ? `${t}.${String(d.getMilliseconds()).padStart(3, "0")}` : t;
}

// moment gives the date too, unless it is today.
export function moment(at: string | undefined): string {
  if (!isTime(at)) return none;
  const d = new Date(at);
  if (d.toDateString() === new Date(now()).toDateString()) return clock(at);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
}

// order sorts names as people do: edge-9 before edge-10.
export const order = new Intl.Collator("en", {numeric: true}).compare;

// visible is the name of a stream with the characters made visible that turn text around: by
// them a name could look like another one.
export const visible = (name: string): string => name.replace(/[\u202a-\u202e\u2066-\u2069]/g, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase()}⟩`);
