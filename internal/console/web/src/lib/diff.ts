// What lines of a text differ from another one.

export interface DiffLine {
  kind: "same" | "plus" | "minus" | "gap";
  text: string;
}

const around = 2; // lines that are shown before and after a difference
const mostCells = 4_000_000; // of the table; larger differences are shown as one block

export function lineDiff(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const all: DiffLine[] = [
    ...a.slice(0, start).map(same),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ];
  const near = all.map((_, i) => all.slice(Math.max(0, i - around), i + around + 1).some((l) => l.kind !== "same"));
  const out: DiffLine[] = [];
  all.forEach((l, i) => {
    if (near[i]) out.push(l);
    else if (out.length === 0 || out[out.length - 1]!.kind !== "gap") out.push({kind: "gap", text: ""});
  });
  return out.length === 1 && out[0]!.kind === "gap" ? [] : out;
}

const same = (text: string): DiffLine => ({kind: "same", text});
const plus = (text: string): DiffLine => ({kind: "plus", text});
const minus = (text: string): DiffLine => ({kind: "minus", text});

// middle finds the longest common run of lines, by the table of its lengths.
function middle(a: string[], b: string[]): DiffLine[] {
  if (!a.length || !b.length || a.length * b.length > mostCells) return [...a.map(minus), ...b.map(plus)];
  const w = b.length + 1;
  const len = new Uint32Array((a.length + 1) * w);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) len[i * w + j] = a[i] === b[j] ? len[(i + 1) * w + j + 1]! + 1 : Math.max(len[(i + 1) * w + j]!, len[i * w + j + 1]!);
  }
  const out: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      out.push(same(a[i]!));
      i++;
      j++;
    } else if (len[(i + 1) * w + j]! >= len[i * w + j + 1]!) out.push(minus(a[i++]!));
    else out.push(plus(b[j++]!));
  }
  return [...out, ...a.slice(i).map(minus), ...b.slice(j).map(plus)];
}
