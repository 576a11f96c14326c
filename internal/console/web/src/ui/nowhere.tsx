import {follow} from "../lib/route";
import {Empty} from "./basic";

// Nowhere is what an address shows that is none of the console.
export function Nowhere() {
  return (
    <Empty title="Nothing is here">
      No page has this address.{" "}
      <a href="/network" onClick={follow}>
        Go to the network.
      </a>
    </Empty>
  );
}
