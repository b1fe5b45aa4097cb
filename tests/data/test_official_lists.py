"""Official layouts of image files with lists: CUB, Cars, Online Products, In-Shop, Flowers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from tests.running import trained
from udml_core.base.errors import UserError
from udml_core.cli.output import print_levels
from udml_core.data import catalog
from udml_core.data.dataset import Dataset, step_name
from udml_core.data.sources.image_folder import Folder
from udml_core.data.sources.listing import MOST_BESIDE
from udml_core.data.sources.official.boxed import Cub
from udml_core.data.sources.official.layout import OfficialLayout
from udml_core.data.splits import make_split


def write_images(folder: Path, *files: str) -> None:
    """Write an image of its own gray value and 16×12 pixels to each path."""
    for number, file in enumerate(files):
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 12), (10 * number, 0, 0)).save(path)


BIRDS = ("001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg",
         "001.Black_footed_Albatross/Black_Footed_Albatross_0009_34.jpg",
         "002.Laysan_Albatross/Laysan_Albatross_0002_1027.jpg", "003.Sooty_Albatross/Sooty_Albatross_0048_796339.jpg")


def write_cub(folder: Path) -> Path:
    root = folder / "CUB_200_2011"
    write_images(root / "images", *BIRDS)
    lists = {"images.txt": [f"{number} {file}" for number, file in enumerate(BIRDS, start=1)],
             "image_class_labels.txt": ["1 1", "2 1", "3 2", "4 3"],
             "train_test_split.txt": ["1 0", "2 1", "3 1", "4 0"],
             "classes.txt": ["1 001.Black_footed_Albatross", "2 002.Laysan_Albatross", "3 003.Sooty_Albatross"],
             "bounding_boxes.txt": [f"{number} 2.0 3.0 5.0 4.0" for number in range(1, 5)]}
    for name, lines in lists.items():
        (root / name).write_text("\n".join(lines) + "\n")
    return root


CARS = ("AM General Hummer SUV 2000", "Ferrari FF Coupe 2012", "Ferrari California Convertible 2012")
BOX = [("bbox_x1", 3), ("bbox_y1", 4), ("bbox_x2", 8), ("bbox_y2", 9)]


def matlab_rows(path_field: str, files: list[str], **columns: list[int]) -> np.ndarray:
    """Build the struct array `annotations`, whose fields are objects as MATLAB writes them."""
    names = [path_field, *(name for name, _ in BOX), *columns]
    rows = np.zeros((1, len(files)), dtype=[(name, object) for name in names])
    for number, file in enumerate(files):
        rows[0, number] = (file, *(value for _, value in BOX), *(column[number] for column in columns.values()))
    return rows


def write_cars(folder: Path) -> Path:
    files = [f"car_ims/00000{number}.jpg" for number in range(1, 5)]
    write_images(folder, *files)
    savemat(folder / "cars_annos.mat", {
        "annotations": matlab_rows("relative_im_path", files, **{"class": [1, 2, 2, 3], "test": [0, 0, 1, 1]}),
        "class_names": np.array([CARS], dtype=object)})
    return folder


def write_cars_devkit(folder: Path) -> Path:
    write_images(folder, *(f"cars_{half}/0000{number}.jpg" for half in ("train", "test") for number in (1, 2)))
    (folder / "devkit").mkdir()
    savemat(folder / "devkit" / "cars_meta.mat", {"class_names": np.array([CARS], dtype=object)})
    for name, classes in (("cars_train_annos", [1, 2]), ("cars_test_annos_withlabels", [2, 3])):
        savemat(folder / "devkit" / f"{name}.mat", {
            "annotations": matlab_rows("fname", ["00001.jpg", "00002.jpg"], **{"class": classes})})
    return folder


def write_products(folder: Path) -> Path:
    halves = {"train": [(1, 1, 1, "bicycle_final/111085122871_0.JPG"), (2, 1, 1, "bicycle_final/111085122871_1.JPG"),
                        (3, 2, 2, "cabinet_final/1.JPG")],
              "test": [(4, 3, 1, "bicycle_final/2.JPG"), (5, 3, 1, "bicycle_final/3.JPG"),
                       (6, 4, 2, "cabinet_final/4.JPG"), (7, 5, 2, "cabinet_final/5.JPG")]}
    for half, rows in halves.items():
        lines = ["image_id class_id super_class_id path", *(" ".join(map(str, row)) for row in rows)]
        (folder / f"Ebay_{half}.txt").write_text("\n".join(lines) + "\n")
        write_images(folder, *(row[3] for row in rows))
    return folder


IN_SHOP = [("img/WOMEN/Dresses/id_00000002/02_1_front.jpg", "id_00000002", "train"),
           ("img/WOMEN/Dresses/id_00000002/02_2_side.jpg", "id_00000002", "train"),
           ("img/MEN/Denim/id_00000001/01_1_front.jpg", "id_00000001", "query"),
           ("img/MEN/Denim/id_00000001/01_2_side.jpg", "id_00000001", "gallery")]


def write_in_shop(folder: Path, rows: Sequence[tuple[str, str, str]] = IN_SHOP) -> Path:
    (folder / "Eval").mkdir(parents=True)
    lines = [str(len(rows)), "image_name item_id evaluation_status", *(f"{a}   {b}   {c}" for a, b, c in rows)]
    (folder / "Eval" / "list_eval_partition.txt").write_text("\n".join(lines) + "\n")
    write_images(folder / "Img", *(row[0] for row in rows))
    return folder


def write_flowers(folder: Path) -> Path:
    write_images(folder, *(f"jpg/image_0000{number}.jpg" for number in range(1, 6)))
    savemat(folder / "imagelabels.mat", {"labels": np.array([[77, 77, 3, 3, 1]], dtype=np.uint8)})
    savemat(folder / "setid.mat", {"trnid": [[1]], "valid": [[4]], "tstid": [[5, 2, 3]]})
    return folder


def halves_of(dataset: Dataset, split: str) -> list[list[str]]:
    """Return the file names of the training and of the test half."""
    divided = make_split(dataset, split)  # type: ignore[arg-type]
    return [[Path(dataset.names[index]).name for index in half] for half in (divided.train, divided.test)]


def classes_of(dataset: Dataset) -> list[str]:
    assert dataset.labels is not None
    return [dataset.class_names[label] for label in dataset.labels]


def test_cub_has_the_classes_and_halves_of_its_lists(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_cub(tmp_path)))
    assert dataset.names == tuple(f"images/{file}" for file in BIRDS)
    assert classes_of(dataset) == [file.split("/")[0] for file in BIRDS]
    assert dataset.official_test is not None
    assert dataset.official_test.tolist() == [True, False, False, True]
    numbers = [[Path(BIRDS[index]).name for index in half] for half in ((0, 1, 2), (3,))]
    assert halves_of(dataset, "zero-shot") == numbers
    assert not dataset.divides_own_images, "a benchmark keeps its protocol"
    assert dataset.images[2].size == (16, 12)
    assert dataset.title == "CUB_200_2011 (CUB-200-2011 layout)"


def test_a_box_crops_the_images_and_changes_the_fingerprint(tmp_path: Path) -> None:
    folder = write_cub(tmp_path)
    whole, cropped = catalog.load(str(folder)), catalog.load(f"{folder}#crop=box")
    assert (cropped.images[0].size, cropped.native_size, whole.native_size) == ((5, 4), 4, 12)
    assert whole.fingerprint != cropped.fingerprint
    assert catalog.find(cropped.name).name == cropped.name, "a run finds the data set by its name"
    (folder / "bounding_boxes.txt").write_text("1 2 3 0 4\n2 2 3 5 4\n3 2 3 5 4\n4 2 3 5 4\n")
    with pytest.raises(UserError, match="image 1 of its lists has an empty bounding box"):
        catalog.load(f"{folder}#crop=box")
    (folder / "bounding_boxes.txt").write_text("1 99 3 5 4\n2 2 3 5 4\n3 2 3 5 4\n4 2 3 5 4\n")
    with pytest.raises(UserError, match="a bounding box outside of the image"):
        catalog.load(f"{folder}#crop=box")


@pytest.mark.parametrize(("file", "lines", "message"), [
    ("images.txt", "3 {0}\n3 {1}\n", "images.txt has two lines for '3'"),
    ("train_test_split.txt", "1 yes\n2 no\n3 7\n4 0\n", "must have 1 for training or 0, got 'yes'"),
    ("images.txt", "1 {0}/x.png\n2 {1}\n", "do not exist")])
def test_lists_that_contradict_themselves_are_refused(file: str, lines: str, message: str, tmp_path: Path) -> None:
    folder = write_cub(tmp_path)
    (folder / file).write_text(lines.format(*BIRDS))
    with pytest.raises(UserError, match=message):
        catalog.load(str(folder))
    if "/x.png" in lines:
        assert catalog.find(str(folder)).signature(), "pages ask for it before they load"


def test_an_exposed_server_follows_no_link_of_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.txt").write_text("1 root:x:0:0\n")
    folder = write_cub(tmp_path / "data")
    (folder / "bounding_boxes.txt").unlink()
    (folder / "bounding_boxes.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.setenv("UDML_EXPOSED", "1")
    monkeypatch.setenv("UDML_DATA", str(tmp_path / "data"))
    with pytest.raises(UserError, match="this server does not read the file that it links to"):
        catalog.load(f"{folder}#crop=box")


@pytest.mark.parametrize("write", [write_cars, write_cars_devkit])
def test_cars_are_divided_by_the_number_of_the_class_not_by_its_name(
        write: Callable[[Path], Path], tmp_path: Path) -> None:
    dataset = catalog.load(str(write(tmp_path)))
    assert classes_of(dataset) == [CARS[0], CARS[1], CARS[1], CARS[2]]
    assert dataset.official_test is not None
    assert dataset.official_test.tolist() == [False, False, True, True]
    assert [len(half) for half in halves_of(dataset, "zero-shot")] == [3, 1], "'Ferrari California' has the last number"
    assert catalog.load(f"{tmp_path}#crop=box").images[3].size == (6, 6), "MATLAB's boxes include their last pixel"


def test_online_products_have_the_official_classes_in_each_half(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_products(tmp_path)))
    assert classes_of(dataset) == [f"product {number}" for number in (1, 1, 2, 3, 3, 4, 5)]
    assert [len(half) for half in halves_of(dataset, "zero-shot")] == [3, 4], "2 and 3 classes, not half of five"
    train, test = halves_of(dataset, "seen")
    assert len(train) == 5
    assert len(test) == 2, "an official division of classes is no division of images"


def test_in_shop_has_queries_and_gallery_in_the_test_half(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_in_shop(tmp_path)))
    assert dataset.class_names == ("id_00000002", "id_00000001")
    assert halves_of(dataset, "zero-shot") == [["02_1_front.jpg", "02_2_side.jpg"], ["01_1_front.jpg", "01_2_side.jpg"]]


def test_queries_of_in_shop_search_the_gallery_where_the_test_half_is_the_official_one(
        tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [(f"img/{item}/{number}.jpg", f"id_{item}", "train" if item < 3 else "gallery" if number else "query")
            for item in range(6) for number in range(3)]
    folder = write_in_shop(tmp_path / "shop", rows)
    assert catalog.folder_of(str(folder)).describe().endswith("Official protocol: 3 queries and 6 gallery images.")
    dataset = catalog.load(str(folder))
    assert dataset.queries is not None
    assert np.flatnonzero(dataset.queries).tolist() == [9, 12, 15]
    run = trained(tmp_path / "runs", method="frozen", dataset=str(folder), split="zero-shot")
    evaluation = run.evaluation()
    assert evaluation is not None
    rows_of_test = np.asarray(run.embeddings("final"))[9:].astype(float)
    distances = ((rows_of_test[::3, None] - rows_of_test) ** 2).sum(axis=2)
    distances[:, ::3] = np.inf
    hits = distances.argmin(axis=1) // 3 == np.arange(3)
    assert evaluation["final"]["gallery recall@1"] == pytest.approx(100 * hits.mean())
    assert evaluation["final"]["gallery recall@50"] == 100, "the gallery has six images"
    run = trained(tmp_path / "runs", method="frozen", dataset=str(folder), split="all")
    assert "with the split 'all' every test image is a query among the others" in capfd.readouterr().err
    assert "gallery recall@1" not in (run.evaluation() or {})["final"]


def test_flowers_have_the_test_images_of_setid(tmp_path: Path) -> None:
    dataset = catalog.load(str(write_flowers(tmp_path)))
    assert classes_of(dataset) == ["flower 077", "flower 077", "flower 003", "flower 003", "flower 001"]
    assert halves_of(dataset, "seen") == [["image_00001.jpg", "image_00004.jpg"],
                                          ["image_00002.jpg", "image_00003.jpg", "image_00005.jpg"]]


WRITERS = {"CUB-200-2011": write_cub, "Cars-196": write_cars, "Stanford Online Products": write_products,
           "In-Shop Clothes Retrieval": write_in_shop, "Oxford Flowers-102": write_flowers}


@pytest.mark.parametrize("name", WRITERS)
def test_the_description_compares_the_numbers_with_the_published_numbers(
        name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = catalog.find(str(WRITERS[name](tmp_path)))
    assert isinstance(source, OfficialLayout)
    assert source.official_name == name
    assert (source.images, source.classes) == source.counts()
    assert f"published: {source.published[0]:,} images in {source.published[1]:,} classes" in source.describe()
    monkeypatch.setattr(type(source), "published", source.counts())
    assert "(as published)" in source.describe()


DAMAGE: list[tuple[str, str, str | None, str]] = [
    ("CUB-200-2011", "train_test_split.txt", None, "train_test_split.txt is missing"),
    ("CUB-200-2011", "images", None, "images is missing"),
    ("CUB-200-2011", "image_class_labels.txt", "1 1\n2 1\n3 2\n", "image_class_labels.txt has no line for 4"),
    ("CUB-200-2011", "image_class_labels.txt", "1 1\n2\n", "line 2 of .* columns '<image_id> <class_id>', got '2'"),
    ("CUB-200-2011", "image_class_labels.txt", "1 a\n2 a\n3 a\n4 a\n", "must contain whole numbers, got 'a'"),
    ("CUB-200-2011", "classes.txt", "\xff", "classes.txt"),
    ("Cars-196", "cars_annos.mat", "MATLAB 5.0 MAT-file", "cars_annos.mat could not be read"),
    ("Cars-196", "car_ims", None, "car_ims or cars_train is missing"),
    ("Stanford Online Products", "Ebay_test.txt", None, "Ebay_test.txt is missing"),
    ("Stanford Online Products", "Ebay_test.txt", "header\n1 1 1 bicycle_final/2.JPG\n", "class 1 is in both halves"),
    ("In-Shop Clothes Retrieval", "Eval/list_eval_partition.txt", "1\na item_id b\nimg/a.jpg id_1 val\n",
     "must be train, query or gallery, got 'val'"),
    ("In-Shop Clothes Retrieval", "Img", None, "Img/img or img is missing"),
    ("Oxford Flowers-102", "setid.mat", None, "setid.mat is missing"),
    ("Oxford Flowers-102", "setid.mat", "", "setid.mat could not be read"),
]


@pytest.mark.parametrize(("name", "file", "content", "message"), DAMAGE)
def test_a_damaged_layout_is_one_message_with_what_was_expected_and_where_to_get_it(
        name: str, file: str, content: str | None, message: str, tmp_path: Path) -> None:
    folder = WRITERS[name](tmp_path)
    if content is None:
        (folder / file).rename(tmp_path.with_name(f"{tmp_path.name}-away"))
    else:
        (folder / file).write_text(content, encoding="latin1")
    with pytest.raises(UserError, match=f"looks like {name}, but .*{message}.* Expected: .* https?://.* plain folder"):
        catalog.load(str(folder))
    source = catalog.find(f"{folder}#level=0")
    assert isinstance(source, Folder)


@pytest.mark.parametrize(("line", "message"), [
    ("5 ../../secret.jpg", r"must name images below this folder, got 'images/../../secret.jpg'"),
    (f"5 {BIRDS[0]}", "twice"), ("5 003.Sooty_Albatross/absent.jpg", "1 of the 5 images .* do not exist, such as")])
def test_the_lists_name_images_of_the_folder_only(line: str, message: str, tmp_path: Path) -> None:
    folder = write_cub(tmp_path)
    write_images(tmp_path, "secret.jpg")
    for name, text in (("images.txt", line), ("image_class_labels.txt", "5 3"), ("train_test_split.txt", "5 1")):
        with (folder / name).open("a") as file:
            file.write(text + "\n")
    with pytest.raises(UserError, match=message):
        catalog.load(str(folder))


def test_images_behind_links_that_lead_out_are_missing_on_an_exposed_server(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_cub(tmp_path / "data")
    write_images(tmp_path, "secret.jpg")
    (folder / "images" / BIRDS[3]).unlink()
    (folder / "images" / BIRDS[3]).symlink_to(tmp_path / "secret.jpg")
    assert len(catalog.load(str(folder))) == 4
    monkeypatch.setenv("UDML_EXPOSED", "1")
    monkeypatch.setenv("UDML_DATA", str(tmp_path / "data"))
    with pytest.raises(UserError, match="1 of the 4 images"):
        catalog.load(str(folder))


def test_a_damaged_image_is_skipped_and_keeps_the_labels_of_the_others(tmp_path: Path) -> None:
    folder = write_cub(tmp_path)
    (folder / "images" / BIRDS[0]).write_bytes(b"damaged")
    dataset = catalog.load(str(folder))
    assert [skipped.file for skipped in dataset.skipped] == [f"images/{BIRDS[0]}"]
    assert classes_of(dataset) == [file.split("/")[0] for file in BIRDS[1:]]
    assert dataset.official_test is not None
    assert dataset.official_test.tolist() == [False, False, True]
    for bird in BIRDS:
        (folder / "images" / bird).write_bytes(b"damaged")
    with pytest.raises(UserError, match=rf"got 0 \(4 skipped\). The first skipped file is 'images/{BIRDS[0]}': not"):
        catalog.load(str(folder))


def test_the_signature_and_the_fingerprint_change_with_the_lists(tmp_path: Path) -> None:
    folder = write_cub(tmp_path)
    before = catalog.find(str(folder)).signature(), catalog.load(str(folder)).fingerprint
    (folder / "train_test_split.txt").write_text("1 1\n2 1\n3 1\n4 0\n\n")
    after = catalog.find(str(folder)).signature(), catalog.load(str(folder)).fingerprint
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_a_layout_is_found_in_the_only_subfolder_and_below_udml_data(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cub(tmp_path / "birds")
    (tmp_path / "birds" / "attributes.txt").write_text("")
    monkeypatch.setenv("UDML_DATA", str(tmp_path))
    assert catalog.load("birds").names == tuple(f"images/{file}" for file in BIRDS)
    assert isinstance(catalog.find("birds#level=2"), Folder)
    (tmp_path / "birds" / "CUB_200_2011" / "classes.txt").unlink()
    assert "classes.txt is missing" in str(catalog.find("birds").missing())


def test_a_large_folder_is_not_searched_for_a_layout_in_its_only_subfolder(tmp_path: Path) -> None:
    write_cub(tmp_path / "birds")
    beside = [tmp_path / "birds" / f"{number}.jpg" for number in range(MOST_BESIDE)]
    for file in beside:
        file.touch()
    assert isinstance(catalog.find(str(tmp_path / "birds")), Folder)
    beside[0].unlink()
    assert isinstance(catalog.find(str(tmp_path / "birds")), Cub)


def test_an_unknown_option_names_the_known_options_and_a_remembered_one_is_kept(tmp_path: Path) -> None:
    folder = write_cub(tmp_path)
    with pytest.raises(UserError, match=r"has #crop=box, got '#crop=circle'"):
        catalog.load(f"{folder}#crop=circle")
    catalog.remember(f"{folder}#crop=box")
    assert f"{folder}#crop=box" in [source.name for source in catalog.sources()]
    for name in ("images.txt", "image_class_labels.txt", "train_test_split.txt"):
        (folder / name).unlink()
    with pytest.raises(UserError, match="Only official data sets, folders with"):
        catalog.load(f"{folder}#crop=box")
    assert "digits" in [source.name for source in catalog.sources()], "the list does not fail with this folder"
    catalog.forget(folder)
    assert str(folder) not in "".join(catalog.remembered_folders())


def test_a_folder_that_may_not_be_searched_is_no_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    folder = write_cub(tmp_path)
    monkeypatch.setattr(Cub, "matches", refuse)
    assert isinstance(catalog.find(str(folder)), Folder)


def test_opening_a_layout_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, steps = write_cub(tmp_path), set()
    catalog.load(str(folder), lambda _share, step: steps.add(step_name(step)))
    assert steps == {"reading CUB-200-2011"}
    print_levels(catalog.folder_of(str(folder)), as_json=False)
    assert capsys.readouterr().out == ("CUB-200-2011: 4 images in 3 classes (published: 11,788 images in 200 classes). "
                                       "Official division: 2 training and 2 test images. "
                                       "Add #crop=box (each image is cropped to its bounding box) to the name.\n")
