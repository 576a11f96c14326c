// The page of the router's console.
import {render} from "preact";
import {App} from "./app";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/map.css";
import "./style/plan.css";
import "./style/streams.css";
import "./style/events.css";
import "./style/scheduling.css";
import "./style/documents.css";

render(<App />, document.getElementById("app")!);
