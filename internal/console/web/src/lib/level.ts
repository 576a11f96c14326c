// How bad something is. The words are also class names.
export type Level = "good" | "fair" | "warn" | "bad" | "off";

const order: Level[] = ["off", "good", "fair", "warn", "bad"];

export const severity = (l: Level): number => order.indexOf(l);

export function worst(levels: Iterable<Level>): Level {
  let w: Level = "off";
  for (const l of levels) if (severity(l) > severity(w)) w = l;
  return w;
}
