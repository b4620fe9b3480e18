import type { PullProgress } from "@sandpiper/core";
import { type Clock, systemClock } from "@sandpiper/protocol/clock";
import type { Arguments } from "../command/arguments.ts";
import { plainText, shortBytes } from "./format.ts";

const REDRAW_MS = 100;

/** As the engine or a node reports it. */
export type LayerProgress = Omit<PullProgress, "totalBytes"> & { readonly totalBytes?: number | null | undefined };

export interface PullViewOptions {
  /** `block`: lines that are redrawn in place; `lines`: for files. */
  readonly as?: "block" | "lines" | "nothing" | undefined;
  readonly write?: ((text: string) => void) | undefined;
  /** Called before the first output. */
  readonly onBegin?: (() => void) | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  readonly clock?: Clock | undefined;
}

/** Shows the progress of an image pull on standard error, layer by layer. On a terminal it erases itself at the end. */
export class PullView implements Disposable {
  readonly #options: PullViewOptions;
  readonly #as: NonNullable<PullViewOptions["as"]>;
  readonly #write: (text: string) => void;
  readonly #clock: Clock;
  readonly #layers = new Map<string, LayerProgress>();
  #drawnLines = 0;
  #drawnAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: PullViewOptions = {}) {
    this.#options = options;
    this.#as = options.as ?? (process.stderr.isTTY === true ? "block" : "lines");
    this.#write = options.write ?? ((text) => process.stderr.write(text));
    this.#clock = options.clock ?? systemClock;
  }

  readonly add = (progress: LayerProgress): void => {
    if (this.#as === "nothing") return;
    if (this.#layers.size === 0) this.#begin(progress);
    const before = this.#layers.get(progress.layer);
    this.#layers.set(progress.layer, progress);
    if (this.#as === "block") this.#draw();
    else if (before?.status !== progress.status) this.#write(`sandpiper: ${lineOf(progress)}\n`);
  };

  [Symbol.dispose](): void {
    this.#erase();
    this.#drawnLines = 0;
  }

  #begin({ image }: LayerProgress): void {
    this.#options.onBegin?.();
    if (this.#as === "lines") this.#write(`sandpiper: pulling ${plainText(image)}\n`);
  }

  #draw(): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#drawnAtMs < REDRAW_MS) return;
    this.#drawnAtMs = nowMs;
    const { columns = process.stderr.columns || 80, rows = process.stderr.rows || 24 } = this.#options;
    const all = [...this.#layers.values()];
    // Without room for all layers, show the unfinished ones.
    const shown = all.length <= rows - 2 ? all : all.filter(({ status }) => status !== "complete").slice(0, rows - 2);
    const done = all.filter(({ status }) => status === "complete").length;
    const head = `pulling ${plainText(all[0]?.image ?? "")}: ${done} of ${all.length} layers`;
    const lines = [head, ...shown.map(lineOf)].map((line) => line.slice(0, columns - 1));
    this.#erase();
    this.#write(lines.map((line) => `${line}\n`).join(""));
    this.#drawnLines = lines.length;
  }

  #erase(): void {
    if (this.#drawnLines > 0) this.#write(`\x1b[${this.#drawnLines}A\r\x1b[J`);
  }
}

/** `--quiet` and `--json` suppress it. */
export function pullViewOf(arguments_: Arguments): Pick<PullViewOptions, "as"> {
  return arguments_.has("quiet") || arguments_.has("json") ? { as: "nothing" } : {};
}

function lineOf({ layer, status, doneBytes, totalBytes }: LayerProgress): string {
  const isOver = status === "complete" || totalBytes === undefined || totalBytes === null;
  const bytes = doneBytes > 0 ? `  ${shortBytes(doneBytes)}${isOver ? "" : ` of ${shortBytes(totalBytes)}`}` : "";
  return `${plainText(layer).slice(0, 12).padEnd(12)}  ${status}${bytes}`;
}
