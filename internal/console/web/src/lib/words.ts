// Sentences for the words of the API. A word without a sentence is shown as it is, so
// that a newer router says nothing wrong.

const reasons: Record<string, string> = {
  // of choices
  cheapest: "cheapest with room",
  kept: "kept: others gain too little",
  pinned: "pinned by an operator",
  spilled: "what is cheaper has no room",
  other_domain: "in another failure domain",
  over_capacity: "nothing has room: the least bad",
  source: "the stream is published here",
  direct: "straight from the source, which is near and of the same ISP",
  direct_far: "straight from the source: no node between is of use",
  direct_isp: "straight from the source across ISPs: no node between is of use",
  between: "over a node between, for the distance",
  bridged: "over a node that has the ISPs of both",
  carrier: "over a node that carries the stream already",
  pool: "from the node's pool: the way to the source is not known or not open",
  no_upstream: "there is nothing to pull from",
  // of what is not chosen
  unknown: "no node has this name",
  self: "a node pulls nothing from itself",
  wrong_role: "its tier is not above",
  dead: "it is not alive",
  draining: "it takes no new work",
  banned: "banned by an operator",
  no_capacity: "its capacity is 0",
  full: "it has no room",
  blind: "it has no upstream itself",
  other_isp: "it has not the ISPs that it should join",
  loop: "the stream would come to it over the node that asks",
  dearer: "others cost less",
  // of scheduling
  placed: "by coverage, quality and load",
  held: "seems down, but so many of its group do that it is kept",
  degraded: "nothing is well: these are the least bad",
  no_edges: "no edge could serve this query at all",
  unknown_domain: "no domain has this name",
  not_edge: "its role is another",
  group: "it is in no group of the domain",
  family: "it has no address of a family that the client can use",
  no_https: "it has no HTTPS",
  unhealthy: "all who looked lately say that it is down",
  unknown_health: "nobody has ever observed it",
  stale_health: "nobody has observed it lately",
  under_attack: "it is under attack, by its figures or an operator",
  // of switches
  upstream_lost: "the connection to the upstream broke",
  upstream_silent: "the upstream sent nothing",
  upstream_slow: "the upstream fell behind",
  upstream_thin: "frames were missing",
  upstream_idle: "the source sends nothing, or too little",
  preferred: "the ring names a better place for this stream",
  planned: "the plan names a better upstream",
  newer_epoch: "the publisher has moved",
  older_epoch: "it has what the publisher left behind",
  not_better: "it has nothing that the current one lacks",
  no_media: "nothing came from it in time",
  recovered: "the current one is well again",
  superseded: "another candidate won",
  // of refused log-ins and changes
  identity_taken: "another node has this name",
  replayed: "an old heartbeat came again",
  not_yours: "it speaks of somebody else",
  clock_skew: "the clocks differ",
  left_out: "players are not sent to it",
};

export function reason(word: string | undefined): string {
  return word ? (reasons[word] ?? word.replaceAll("_", " ")) : "";
}

// Reasons in events of nodes, where a word may say something else.
const eventReasons: Record<string, string> = {
  no_upstream: "the stream is wanted here, and pulled from nobody yet",
  first: "nothing came before it",
  overlap: "joined where both sent the same frames",
  keyframe: "joined at a keyframe: no frames of both were the same",
  idle: "nobody wants it here any more",
  not_found: "it is not there",
  refused: "it lets nobody in, or nothing listens there",
  lost: "the connection broke",
  timeout: "no answer, or nothing of the stream, in time",
  worse: "no better than what was there",
  loop: "it leads back to the node itself",
  ended: "the stream is over there",
  unreached: "it does not get at the stream itself",
  over_bound: "it sends too much, and has another node bring the stream",
};

export const eventReason = (word: string | undefined): string => (word && eventReasons[word]) || reason(word);

const kinds: Record<string, string> = {
  node_up: "node up",
  node_down: "node down",
  node_forgotten: "node forgotten",
  node_restarted: "node restarted",
  node_left_out: "left out of scheduling",
  heartbeat_refused: "heartbeat refused",
  document_refused: "document refused",
  router_up: "router up",
  router_down: "router down",
  leader: "new leader",
  plan: "new plan",
  store_down: "store lost",
  store_up: "store back",
  snapshot: "new snapshot",
  gave_up: "gave up",
};

export const kind = (word: string): string => kinds[word] ?? word.replaceAll("_", " ");

const outcomes: Record<string, string> = {
  here: "served here: the policy wants this edge",
  near: "served here: another is better, but not by enough",
  sent_on: "sent to a better edge",
  ticketed: "served here: sent here by another edge",
  bad_ticket: "ticket forged or over",
  off: "the domain does not re-check",
  no_key: "no key to sign tickets with",
  no_view: "the edge has no snapshot yet",
  stale_view: "what is known of other edges is too old",
  not_in_plan: "the edge is not in its own snapshot",
  other_domain: "no domain has the name that was asked for",
  unknown_place: "nobody knows where the player is",
  nowhere_else: "no other edge is better and up",
};

export const outcome = (word: string): string => outcomes[word] ?? word.replaceAll("_", " ");

export const ways: Record<string, string> = {name: "by name (DNS)", address: "by address", ticket: "by redirect"};

export const parts: [keyof import("./plan-model").Parts, string, string][] = [
  ["delay", "Delay", "the way there, and media later than that"],
  ["loss", "Loss", "packets lost, or sent again"],
  ["stall", "Stalls", "stalls, and switches away"],
  ["first_frame", "First frame", "a slow start"],
  ["failure", "Failures", "tries without an answer"],
  ["money", "Money", "the price of crossing regions or ISPs"],
  ["load", "Load", "how near the upstream is to its capacity"],
  ["tier", "Tier", "for leaving the relays out"],
  ["behind", "Behind", "the upstream's own way to the source"],
];

export const states: Record<string, string> = {up: "up", draining: "draining", full: "full", down: "down"};

export const roles = ["center", "relay", "edge"] as const;

export const tier: Record<string, string> = {center: "Centers", relay: "Relays", edge: "Edges"};
