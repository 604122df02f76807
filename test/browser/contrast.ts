/** Texts of a page and whether they can be told from what is behind them (WCAG 2.2, success criterion 1.4.3). */
import type { Page } from 'playwright-core';

export interface Text {
  readonly text: string;
  readonly ink: string;
  /** The backgrounds of the element and its ancestors, from the inside out. */
  readonly grounds: readonly string[];
  readonly sizePx: number;
  readonly weight: number;
}

/** Every visible text, once per style. Disabled controls are exempt. */
export function textsOf(page: Page): Promise<readonly Text[]> {
  return page.evaluate(() => {
    const found = new Map<string, Text>();
    for (const element of document.querySelectorAll('body *')) {
      const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
      const text = own
        .map((node) => node.textContent)
        .join('')
        .trim();
      const isOff = element.closest('[aria-disabled="true"], :disabled, .hidden, [hidden]') !== null;
      if (text === '' || isOff || element.getClientRects().length === 0) continue;
      const grounds: string[] = [];
      for (let at: Element | null = element; at !== null; at = at.parentElement) {
        grounds.push(getComputedStyle(at).backgroundColor);
      }
      const { color: ink, fontSize, fontWeight } = getComputedStyle(element);
      const look = { ink, grounds, sizePx: Number.parseFloat(fontSize), weight: Number(fontWeight) };
      found.set(JSON.stringify(look), { text, ...look });
    }
    return [...found.values()];
  });
}

/** Whether the contrast is less than 4.5 to 1, for large text 3 to 1. */
export function isFaint({ ink, grounds, sizePx, weight }: Text): boolean {
  const ground = grounds.find((colour) => (channelsOf(colour)[3] ?? 1) > 0) ?? 'rgb(255, 255, 255)';
  const [dark = 0, light = 0] = [luminance(ink), luminance(ground)].toSorted((a, b) => a - b);
  const isLarge = sizePx >= 24 || (sizePx >= 18.66 && weight >= 700);
  return (light + 0.05) / (dark + 0.05) < (isLarge ? 3 : 4.5);
}

function channelsOf(colour: string): readonly number[] {
  return (colour.match(/[\d.]+/g) ?? []).map(Number);
}

function luminance(colour: string): number {
  const [r = 0, g = 0, b = 0] = channelsOf(colour).map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
