"""Currencies and units of six languages, each with one normal form."""

__all__ = ["CURRENCIES", "CURRENCY_SIGNS", "UNITS"]


def _table(lines: str) -> dict[str, str]:
    """`form: spelling spelling` per line becomes a spelling -> form map; `_` in a spelling is a blank."""
    table: dict[str, str] = {}
    for line in lines.strip().splitlines():
        form, _, spellings = line.partition(":")
        for spelling in spellings.split():
            table[spelling.replace("_", " ")] = form.strip()
    return table


CURRENCY_SIGNS = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "￥": "CNY", "₹": "INR", "₩": "KRW"}

#: By lower-case word behind (or code before) a number.
CURRENCIES = _table("""
    USD: usd us$ dollar dollars dólar dólares 美元 美金 ドル
    EUR: eur euro euros € 欧元 ユーロ
    GBP: gbp pound pounds £ pfund livres libras 英镑 ポンド
    JPY: jpy yen 円 日元
    CNY: cny rmb yuan 元 块 块钱 人民币 人民元
    CHF: chf franken
    INR: inr rupees ₹
    CAD: cad
    AUD: aud
    SEK: sek
    MXN: mxn pesos peso
    BTC: btc
    USDcent: cents cent
""") | {"$": "USD", "¥": "JPY"}

UNITS = _table("""
    ms: ms millisecond milliseconds millisekunden millisecondes milisegundos 毫秒 ミリ秒
    s: s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos 秒 秒钟 秒間
    min: min mins minute minutes minuten minuto minutos 分钟 分間
    h: h hr hrs hour hours std stunde stunden heure heures hora horas 小时 时间 時間 个小时
    d: day days tag tage tagen jour jours día días dia dias 天 日間 日间
    night: night nights nacht nächte nächten nuit nuits nuitées noche noches 晚 泊
    decade: decades jahrzehnte décennies décadas
    quarter: quarters quartale trimestres 个季度 四半期
    week: week weeks woche wochen semaine semaines semana semanas 周 星期 週間 个星期
    month: month months monat monate monaten mois mes meses 个月 か月 ヶ月 カ月
    year: year years jahr jahre jahren an ans année années año años 年間 年间 年
    km: km kilometer kilometers kilometres kilomètres kilómetros 公里 千米 キロメートル
    m: m meter meters metre metres mètre mètres metro metros 米 メートル
    cm: cm zentimeter centimètres centímetros 厘米 センチ
    mm: mm millimeter 毫米 ミリ
    mi: mi mile miles
    ft: ft feet foot
    in: inch inches zoll pouces pulgadas 英寸 インチ
    yd: yard yards
    ha: hectare hectares hektar hectáreas 公顷 ヘクタール
    acre: acres 亩
    km²: km² km2 平方公里
    tsubo: 坪
    m²: m² m2 sqm 平方米 平米 quadratmeter
    kg: kg kilo kilos kilogram kilograms kilogramm 公斤 千克 キロ キログラム
    mg: mg 毫克 ミリグラム
    µg: µg μg mcg
    g: g gram grams gramm gramme grammes gramos 克 グラム
    oz: oz ounce ounces
    jin: 斤
    t: t ton tons tonne tonnes tonnen toneladas 吨 トン
    lb: lb lbs
    l: l liter liters litre litres litro litros 升 リットル
    gal: gallon gallons
    cl: cl
    m³: m³ m3 立方米
    ml: ml 毫升 ミリリットル
    byte: byte bytes octets 字节 バイト
    kB: kb
    MB: mb mo
    GB: gb go
    TB: tb
    KiB: kib
    MiB: mib
    GiB: gib
    Mbit/s: mbit/s mbps
    Gbit/s: gbit/s gbps
    kbit/s: kbit/s kbps
    Hz: hz
    kHz: khz
    MHz: mhz
    GHz: ghz
    W: w watt watts
    kW: kw kilowatt 千瓦 キロワット
    Wh: wh
    kWh: kwh kilowattstunden 千瓦时 キロワット時
    MW: mw
    MWh: mwh
    V: v volt volts
    A: a amp amps
    mA: ma
    mAh: mah
    dB: db
    kcal: kcal 千卡 キロカロリー
    kJ: kj
    bar: bar
    psi: psi
    hPa: hpa
    rpm: rpm
    °C: °c ℃ 度 摄氏度
    °F: °f
    px: px pixel pixels
    dpi: dpi
    req/s: req/s rps requests/s
    km/h: km/h kmh
    token: token tokens
    user: users user nutzer benutzer utilisateurs usuarios 用户 个用户 ユーザー
    person: people persons person personen personnes personas 人 名 个人
    item: items item artikel articles artículos 件 个 個 項目 条 份
    unit: units unit stück unités unidades pcs 台 部
    page: pages page seiten seite páginas 页 ページ
    row: rows row zeilen lignes filas 行
    line: lines line
    file: files file dateien fichiers archivos 个文件
    request: requests request anfragen requêtes solicitudes 个请求 次请求
    time: times time mal fois veces 次 回
    seat: seats seat plätze
    license: licenses licences lizenzen
    box: boxes box kisten kartons cartons cajas 箱
    bottle: bottles flaschen bouteilles botellas 瓶
    tablet: tablets pills tabletten comprimés pastillas comprimidos 片 錠
    dose: doses dosen dosis
    pallet: pallets paletten palettes palés
    pack: packs packets packungen päckchen paquets paquetes 包 袋
    piece: pieces piece stücke morceaux piezas 块
    sheet: sheets blatt feuilles hojas 张 枚
    set: sets 套
    bag: bags säcke sacs sacos bolsas
    cup: cups tassen tasses tazas 杯
    room: rooms zimmer räume chambres habitaciones 间 部屋
    vehicle: 辆
    volume: 册 冊
    long: 本
    copy: copies kopien copies copias
    server: servers server serveurs servidores 台服务器
    node: nodes node knoten nœuds nodos 个节点
    core: cores core kerne cœurs núcleos 核
    thread: threads
    character: characters chars zeichen caractères caracteres 字 字符 个字符 文字
    point: points point punkte
    ticket: tickets
    retry: retries
    attempt: attempts versuche tentatives intentos
    ton: 噸
""")
