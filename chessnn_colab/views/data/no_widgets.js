/* Says that this page shows no widgets, where it cannot. Called with a CSS class of the widget, the time in milliseconds at
   which the kernel wrote the page, the words, those for a page that is opened again later, and their style. Where a page
   is opened again and the widget is gone, Jupyter's own words for that help nobody, and are taken out. */
((name, written, now, later, style) => {
  const PATIENCE = 5000, LOOK = 250, FRESH = 15000, MOST = 60000;
  const begun = Date.now(), words = Math.abs(begun - written) < FRESH ? now : later;
  const look = setInterval(() => {
    const notice = document.querySelector('[data-notice="' + name + '"]');
    const lives = document.querySelector('.' + name), waited = Date.now() - begun;
    const said = notice && words && waited > PATIENCE && !lives;
    if (lives || waited > MOST && !said) clearInterval(look);
    if (!notice) return;
    const output = notice.closest('.jp-OutputArea, .output');
    if (output) output.querySelectorAll('.jp-OutputArea-output, .output_subarea').forEach(each => {
      if (/^(Error displaying|Loading) widget/.test(each.textContent)) each.textContent = '';
    });
    notice.textContent = said ? words : '';
    notice.style.cssText = said ? style : '';
  }, LOOK);
})
