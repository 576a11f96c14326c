// The signs of the console, drawn on a grid of 24.
const paths = {
  network: "M5 5h4v4H5zM15 3h4v4h-4zM15 17h4v4h-4zM9 7h3a2 2 0 0 0 2-2h1M9 7h1a3 3 0 0 1 3 3v6a3 3 0 0 0 2 3",
  plan: "M4 6h7M4 12h7M4 18h7M15 5l2 2 3-4M15 12h5M15 18h5",
  streams: "M4 5h16v14H4zM10 9l5 3-5 3z",
  scheduling: "M12 21s7-6 7-11.500A7 7 0 0 0 5 9.500C5 15 12 21 12 21zM12 7.500a2.200 2.200 0 1 0 0 4.400 2.200 2.200 0 0 0 0-4.400z",
  events: "M4 6h.01M4 12h.01M4 18h.01M8 6h12M8 12h12M8 18h8",
  documents: "M6 3h8l4 4v14H6zM14 3v4h4M9 12h6M9 16h6",
  good: "M5 12.500l4.500 4.500L19 7.500",
  warn: "M12 3.500L2.500 20h19zM12 10v4.500M12 17.200v.1",
  bad: "M8 3h8l5 5v8l-5 5H8l-5-5V8zM9 9l6 6M15 9l-6 6",
  off: "M6 12h12",
  info: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v5.500M12 7.500v.1",
  close: "M6 6l12 12M18 6L6 18",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM16 16l4.500 4.500",
  user: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM4.500 20c.8-4 3.800-6 7.500-6s6.700 2 7.500 6",
  pin: "M9 3h6l-1 6 3 3v2H7v-2l3-3zM12 14v7",
  ban: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM5.600 5.600l12.800 12.800",
  freeze: "M12 3v18M4.500 7.500l15 9M19.500 7.500l-15 9",
  drain: "M12 3v12M7 10l5 5 5-5M5 20h14",
  tune: "M4 8h9M17 8h3M4 16h3M11 16h9M15 5.500v5M9 13.500v5",
  back: "M9 7l-5 5 5 5M4 12h11a5 5 0 0 1 0 10",
  pause: "M8 5v14M16 5v14",
  play: "M7 5l12 7-12 7z",
  right: "M9 5l7 7-7 7",
  down: "M5 9l7 7 7-7",
  swap: "M4 8h14M14 4l4 4-4 4M20 16H6M10 12l-4 4 4 4",
  viewers: "M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12zM12 9.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5z",
} as const;

export type IconName = keyof typeof paths;

export function Icon({name, label, big}: {name: IconName; label?: string; big?: boolean}) {
  return (
    <svg class={big ? "icon big" : "icon"} viewBox="0 0 24 24" role={label ? "img" : undefined} aria-label={label} aria-hidden={label ? undefined : "true"}>
      <path d={paths[name]} />
    </svg>
  );
}
