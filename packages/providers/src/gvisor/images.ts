import { mkdir } from "node:fs/promises";
import type { Clock } from "@sandpiper/core";
import { hostImage } from "./host-image.ts";
import { directoryImage, type Image } from "./image.ts";

/** The delay until new sandboxes see a change of the host's /etc, because checking it takes some milliseconds. */
const HOST_CHECK_INTERVAL_MS = 60_000;

/** Finds the image for a sandbox's `rootfs`. */
export class Images {
  readonly #stateDirectory: string;
  readonly #clock: Clock;
  #host: { readonly image: Promise<Image>; readonly checkedAtMs: number } | undefined;

  constructor(stateDirectory: string, clock: Clock) {
    this.#stateDirectory = stateDirectory;
    this.#clock = clock;
  }

  async find(rootfs: string): Promise<Image> {
    await mkdir(this.#stateDirectory, { recursive: true, mode: 0o700 });
    return rootfs === "host" ? await this.#hostImage() : await directoryImage(rootfs, this.#stateDirectory);
  }

  #hostImage(): Promise<Image> {
    const now = this.#clock.monotonicMs();
    if (this.#host !== undefined && now - this.#host.checkedAtMs < HOST_CHECK_INTERVAL_MS) return this.#host.image;
    const image = hostImage(this.#stateDirectory);
    this.#host = { image, checkedAtMs: now };
    image.catch(() => {
      this.#host = undefined;
    });
    return image;
  }
}
