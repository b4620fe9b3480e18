/** The single place that records whether the node still accepts work. */
export class NodePhase {
  #phase: "running" | "draining" | "stopping" = "running";

  /** The node hands off its sandboxes and creates no new ones. */
  get isDraining(): boolean {
    return this.#phase !== "running";
  }

  /** The node answers only health checks. */
  get isStopping(): boolean {
    return this.#phase === "stopping";
  }

  drain(): void {
    if (this.#phase === "running") this.#phase = "draining";
  }

  stop(): void {
    this.#phase = "stopping";
  }
}
