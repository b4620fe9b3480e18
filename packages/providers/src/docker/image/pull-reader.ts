import type { PullProgress } from "@sandpiper/core";

/** A line of the engine's answer to a pull. */
interface PullLine {
  readonly id?: string;
  readonly status?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number; readonly units?: string };
  readonly error?: string;
  readonly errorDetail?: { readonly message?: string };
}

const STATUSES: Readonly<Record<string, PullProgress["status"]>> = {
  "Pulling fs layer": "waiting",
  Waiting: "waiting",
  Downloading: "downloading",
  "Verifying Checksum": "downloading",
  "Download complete": "downloading",
  Extracting: "unpacking",
  "Pull complete": "complete",
  "Already exists": "complete",
};
/** After these all of a layer is there, though the engine does not say how much that was. */
const WHOLE = new Set(["Verifying Checksum", "Download complete", "Pull complete", "Already exists"]);

/** What the engine said went wrong in the middle of a pull. */
export class PullFailure extends Error {}

/** Reads what an engine says while it pulls an image. */
export class PullReader {
  readonly #image: string;
  /** The sizes of layers: the engine only tells them while it loads them. */
  readonly #totals = new Map<string, number>();

  constructor(image: string) {
    this.#image = image;
  }

  /** What a line says about a layer, if it is about one. */
  read(line: string): PullProgress | undefined {
    const { id, status = "", progressDetail, error, errorDetail } = JSON.parse(line) as PullLine;
    const failure = errorDetail?.message ?? error;
    if (failure !== undefined) throw new PullFailure(failure);
    const known = STATUSES[status];
    if (id === undefined || known === undefined) return undefined;
    // Some engines count seconds while they unpack.
    const inBytes = progressDetail?.units === undefined ? progressDetail : undefined;
    if (inBytes?.total !== undefined && inBytes.total > 0) this.#totals.set(id, inBytes.total);
    const totalBytes = this.#totals.get(id);
    const doneBytes = WHOLE.has(status) ? (totalBytes ?? 0) : (inBytes?.current ?? 0);
    return { image: this.#image, layer: id, status: known, doneBytes, totalBytes };
  }
}
