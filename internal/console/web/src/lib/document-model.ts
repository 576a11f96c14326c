// A version of what operators edit, as the router's package fleet has it.
export interface Document {
  key: string;
  version: number; // 0: nobody has written it yet
  at?: string;
  author: string;
  comment: string;
  body?: string; // not in a history
  size: number;
}
