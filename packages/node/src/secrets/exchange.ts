import type { HeaderPair, RequestHead } from "./inject.ts";

/** A request as the sandbox sent it. */
export interface GuestRequest extends RequestHead {
  readonly method: string;
  /** The host that it names, with its port; undefined if it names none, or several. */
  readonly authority: string | undefined;
}

/** A request that may be sent, with the values of its secrets. */
export interface Exchange extends RequestHead {
  /** The headers of the answer as the sandbox may see them. */
  answerHeaders(headers: readonly HeaderPair[]): readonly HeaderPair[];
  /** Records the status of the answer; null if there was none. */
  answered(status: number | null): void;
}

/** A request that is answered by the node instead of the server. */
export class RefusedRequest extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  /** The body of the answer. */
  get text(): string {
    return `sandpiper: ${this.message}\n`;
  }

  static from(thrown: unknown): RefusedRequest {
    if (thrown instanceof RefusedRequest) return thrown;
    return new RefusedRequest(502, "the node failed to handle this request");
  }
}

/** Checks a request and injects secrets. Rejects with `RefusedRequest`. */
export type Admit = (request: GuestRequest) => Promise<Exchange>;

/** Pairs of a flat list of names and values. */
export function headerPairs(flat: readonly string[]): readonly HeaderPair[] {
  return Array.from({ length: Math.floor(flat.length / 2) }, (_, index) => [
    flat[2 * index] as string,
    flat[2 * index + 1] as string,
  ]);
}
