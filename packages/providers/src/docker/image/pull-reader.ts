import type { PullProgress } from "@sandpiper/core";

/** A line of the engine's response to a pull. */
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
/** With these statuses a layer is complete; the engine does not repeat its size. */
const WHOLE = new Set(["Verifying Checksum", "Download complete", "Pull complete", "Already exists"]);

/** An error that the engine reported during a pull. */
export class PullFailure extends Error {}

/** Parses an engine's progress messages of a pull. */
export class PullReader {
  readonly #image: string;
  /** The sizes of layers, which the engine reports only during their download. */
  readonly #totals = new Map<string, number>();

  constructor(image: string) {
    this.#image = image;
  }

  /** The progress of a layer; undefined for other lines. */
  read(line: string): PullProgress | undefined {
    const { id, status = "", progressDetail, error, errorDetail } = JSON.parse(line) as PullLine;
    const failure = errorDetail?.message ?? error;
    if (failure !== undefined) throw new PullFailure(failure);
    const known = STATUSES[status];
    if (id === undefined || known === undefined) return undefined;
    // Some engines count seconds during unpacking.
    const inBytes = progressDetail?.units === undefined ? progressDetail : undefined;
    if (inBytes?.total !== undefined && inBytes.total > 0) this.#totals.set(id, inBytes.total);
    const totalBytes = this.#totals.get(id);
    const doneBytes = WHOLE.has(status) ? (totalBytes ?? 0) : (inBytes?.current ?? 0);
    return { image: this.#image, layer: id, status: known, doneBytes, totalBytes };
  }
}
