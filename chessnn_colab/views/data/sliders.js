/* Sliders and lists above a picture, which live.js starts: whoever moves one asks the kernel for another picture. */
((root, picture, notice, ask) => {
  let touched = false;
  picture.before(notice);
  for (const kind of ['pointerdown', 'keydown']) root.addEventListener(kind, () => { touched = true; }, true);
  root.addEventListener('change', ask);
  /* A slider is no input element: what tells of it is the number beside it. */
  const inNumber = ({target}) => (target.closest ? target : target.parentElement)?.closest('.widget-readout');
  new MutationObserver(changes => { if (touched && changes.some(inNumber)) ask(); })
    .observe(root, {subtree: true, childList: true, characterData: true});
})
