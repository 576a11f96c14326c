// A Value is something that changes while the page is shown. Components read it through
// use and are drawn again when it changes.
import {useEffect, useState} from "preact/hooks";

export class Value<T> {
  #value: T;
  #readers = new Set<(v: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const read of [...this.#readers]) read(value);
  }

  subscribe(read: (v: T) => void): () => void {
    this.#readers.add(read);
    return () => this.#readers.delete(read);
  }
}

export function use<T>(value: Value<T>): T {
  const [, draw] = useState(0);
  const seen = value.get();
  useEffect(() => {
    if (!Object.is(seen, value.get())) draw((n) => n + 1); // it changed before this ran
    return value.subscribe(() => draw((n) => n + 1));
  }, [value]);
  return seen;
}
