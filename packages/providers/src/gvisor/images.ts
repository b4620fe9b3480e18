import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@sandpiper/core";
import { hostImage } from "./host-image.ts";
import { directoryImage, type Image } from "./image.ts";

/** How soon a change of the host's /etc shows in new sandboxes: looking costs some milliseconds. */
const HOST_CHECK_INTERVAL_MS = 60_000;

/** Finds the image that a sandbox's `rootfs` means. */
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
    const stateDirectory = this.#stateDirectory;
    const image = hostImage({ stateDirectory, imagesDirectory: join(stateDirectory, "gvisor/images") });
    this.#host = { image, checkedAtMs: now };
    image.catch(() => {
      this.#host = undefined;
    });
    return image;
  }
}
