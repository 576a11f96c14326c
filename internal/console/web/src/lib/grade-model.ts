// Words for how nodes and links are, which all models share.
export type State = "up" | "draining" | "full" | "down";
export type Grade = "good" | "fair" | "poor" | "unknown";
