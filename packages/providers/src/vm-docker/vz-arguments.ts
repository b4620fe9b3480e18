/** Where the engine listens inside, on vsock; Docker's usual number. */
const ENGINE_PORT = 2375;

export interface VzMachine {
  readonly memoryMib: number;
  readonly vcpuCount: number;
  /** A raw disk that boots by itself and serves its engine on vsock. */
  readonly disk: string;
  /** Of the firmware; made when it is missing. */
  readonly variableStore: string;
  readonly engineSocket: string;
  /** Where vfkit itself is spoken to. */
  readonly controlSocket: string;
  readonly consoleLog: string;
}

/** vfkit's command line: a machine without a network device. */
export function vzArguments(machine: VzMachine): string[] {
  const devices = [
    `virtio-blk,path=${machine.disk}`,
    "virtio-rng",
    `virtio-serial,logFilePath=${machine.consoleLog}`,
    // The host connects, the guest listens.
    `virtio-vsock,port=${ENGINE_PORT},socketURL=${machine.engineSocket},connect`,
  ];
  return [
    ...["--cpus", String(Math.ceil(machine.vcpuCount)), "--memory", String(machine.memoryMib)],
    ...["--bootloader", `efi,variable-store=${machine.variableStore},create`],
    ...["--restful-uri", `unix://${machine.controlSocket}`],
    ...devices.flatMap((device) => ["--device", device]),
  ];
}
