// What the documents are that are edited here.
interface About {
  title: string;
  what: string;
  example: string;
}

export const about: Record<string, About> = {
  domains: {title: "Domains", what: "The names that players ask for, their zones, and what operators have ordered for some clients. YAML.", example: "domains:\n  - name: play.example.com\n    ttl: 30s\n"},
  network: {title: "Network", what: "Regions and how far they are apart, what things cost, when an edge counts as well. YAML.", example: "regions:\n  - name: east\n    lat: 31.2\n    lon: 121.5\n"},
  coverage: {title: "Coverage", what: "Where addresses are: a line each of CIDR, REGION and ISP.", example: "192.0.2.0/24 east telecom\n"},
};
