/** How work in many transactions tells how far it is, and is stopped between two of them. */
export interface WorkOptions {
  /** In whatever the work counts; only the ratio tells. */
  readonly onProgress?: (reached: number, total: number) => void
  /** What has been done by then stands, and the next work of the same kind goes on from there. */
  readonly isStopping?: () => boolean | Promise<boolean>
}
