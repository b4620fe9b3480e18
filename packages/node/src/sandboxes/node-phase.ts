/** Whether the node still takes new work. The only place that knows. */
export class NodePhase {
  #phase: "running" | "draining" | "stopping" = "running";

  /** The node hands its sandboxes over and creates no new ones. */
  get isDraining(): boolean {
    return this.#phase !== "running";
  }

  /** The node answers health checks and nothing else. */
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
