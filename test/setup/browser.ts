import chromium from '@sparticuz/chromium'
import { type Browser, type BrowserContextOptions, chromium as driver, type Page } from 'playwright-core'
import { afterAll, onTestFinished } from 'vitest'

/** In one process, the end of a window can end the browser. The others let pages do what no user's browser allows. */
const UNWANTED = ['--single-process', '--disable-web-security', '--allow-running-insecure-content']

/** The one that npm brings runs on Linux; elsewhere it is the machine's own Chrome. */
async function launch(): Promise<Browser> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return driver.launch({ channel: 'chrome' })
  return driver.launch({
    executablePath: await chromium.executablePath(),
    args: chromium.args.filter((arg) => !UNWANTED.includes(arg)),
    headless: true,
  })
}

/** One browser for all tests of a file, each of which opens windows of its own. */
export function useBrowser(): { open(url: string, options?: BrowserContextOptions): Promise<Page> } {
  let browser: Promise<Browser> | null = null
  afterAll(async () => (await browser)?.close())
  return {
    async open(url, options) {
      browser ??= launch()
      const context = await (await browser).newContext(options)
      onTestFinished(() => context.close())
      const page = await context.newPage()
      await page.goto(url)
      return page
    },
  }
}
