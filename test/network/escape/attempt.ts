/** A way out of a sandbox that must not work, tried as root. */
export interface Attempt {
  readonly name: string;
  /** Lines of Python that print what they reach. The guest program is `net`. */
  readonly script: string;
  /** What the output must not match. Every server says "reached" and its address. */
  readonly escaped?: RegExp;
  /** `open` allows the whole internet, which is the weaker wall; `rules` only http and https of site.example. */
  readonly policy?: "open" | "rules";
}

/** The ports of the host's own services, in the node's network namespace. */
export const HOST_PORT = 8099;
export const HOST_SOCKET = "sandpiper-escape";
export const NODE_ADDRESS = "10.77.0.11";
export const NODE_PORT = 4747;

/** Tries to read a page of a server; several addresses in one attempt are tried in turn. */
export const get = (...targets: readonly (readonly [host: string, port?: number])[]): string =>
  targets.map(([host, port = 80]) => attempt(`net.get(${JSON.stringify(host)}, ${port})`)).join("\n");

/** Prints the value of an expression, or why it failed, so that the attempts after it run too. */
export function attempt(expression: string): string {
  return `try: print(${expression})\nexcept OSError as error: print("failed:", error)`;
}
