import chromium from '@sparticuz/chromium'
import { type Browser, chromium as driver } from 'playwright-core'

/**
 * In one process, the end of a window can end the browser. The next two let pages do what no user's browser allows. The
 * others have the processor imitate a graphics card, which takes a fifth more of its time.
 */
const UNWANTED = [
  '--single-process',
  '--disable-web-security',
  '--allow-running-insecure-content',
  '--ignore-gpu-blocklist',
  '--in-process-gpu',
  '--use-gl=angle',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
]

/** The one that npm brings runs on Linux; elsewhere it is the machine's own Chrome. It ends with this process. */
export async function launchChromium(): Promise<Browser> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return driver.launch({ channel: 'chrome' })
  return driver.launch({
    executablePath: await chromium.executablePath(),
    args: [...chromium.args.filter((arg) => !UNWANTED.includes(arg)), '--disable-gpu'],
    headless: true,
  })
}
