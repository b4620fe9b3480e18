import { expect, it } from "vitest";
import { vzArguments } from "./vz-arguments.ts";

it("configures a vfkit machine with its own disk, no network device, and its engine on a socket", () => {
  const machine = {
    memoryMib: 2048,
    vcpuCount: 1.5,
    disk: "/m/disk.img",
    variableStore: "/m/efi",
    engineSocket: "/m/engine.sock",
    controlSocket: "/m/control.sock",
    consoleLog: "/m/console.log",
  };
  expect(vzArguments(machine)).toEqual([
    ...["--cpus", "2", "--memory", "2048"],
    ...["--bootloader", "efi,variable-store=/m/efi,create"],
    ...["--restful-uri", "unix:///m/control.sock"],
    ...["--device", "virtio-blk,path=/m/disk.img"],
    ...["--device", "virtio-rng"],
    ...["--device", "virtio-serial,logFilePath=/m/console.log"],
    ...["--device", "virtio-vsock,port=2375,socketURL=/m/engine.sock,connect"],
  ]);
});
